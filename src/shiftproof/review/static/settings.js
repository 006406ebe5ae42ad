// What the server wrote into the page.

export const settings = JSON.parse(document.getElementById("settings").textContent);

from shiftproof.cli import main

main()

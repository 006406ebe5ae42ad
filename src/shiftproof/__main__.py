from shiftproof.cli.main import main

main()

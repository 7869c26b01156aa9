"""Where people meet the library: command line, explorer, server, other packages."""

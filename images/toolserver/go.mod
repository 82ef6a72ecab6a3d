module rollcage.dev/toolserver

go 1.26

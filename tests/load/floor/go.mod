module rollcage.dev/load/floor

go 1.26

package guard

const (
	seccompNumber = 277
	architecture  = 0xc00000b7
)

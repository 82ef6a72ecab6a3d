package guard

const (
	seccompNumber = 317
	architecture  = 0xc000003e
)

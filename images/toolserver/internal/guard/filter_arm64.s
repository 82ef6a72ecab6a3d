#include "textflag.h"

// See filter_amd64.s. Called with R0 = signal, R1 = siginfo, R2 = context.
TEXT filter<>(SB), NOSPLIT|NOFRAME, $0
	CMPW	$32, R0
	BGE	drop
	MOVW	8(R1), R9
	CMPW	$0, R9
	BLT	drop
	BGT	raised
	MOVW	16(R1), R9
	CBNZW	R9, drop
pass:
	MOVD	·goHandler(SB), R9
	JMP	(R9)
raised:
	MOVWU	·faults(SB), R9
	LSRW	R0, R9, R9
	TBNZ	$0, R9, pass
drop:
	RET

// func filterAddress() uintptr
TEXT ·filterAddress(SB), NOSPLIT, $0-8
	MOVD	$filter<>(SB), R9
	MOVD	R9, ret+0(FP)
	RET

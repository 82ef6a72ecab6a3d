#include "textflag.h"

// The filter passes a signal on to Go's handler when the kernel raised it
// (si_code > 0) or when kill(2) was called outside of this pid namespace
// (si_code == 0, si_pid == 0). A sender inside has a pid, and the kernel lets
// nobody claim an si_code of 0 or more for another process.
//
// Called by the kernel with DI = signal, SI = siginfo, DX = context; it changes
// none of them, and AX belongs to nobody here.
TEXT filter<>(SB), NOSPLIT|NOFRAME, $0
	MOVL	8(SI), AX
	TESTL	AX, AX
	JGT	pass
	JLT	drop
	MOVL	16(SI), AX
	TESTL	AX, AX
	JNE	drop
pass:
	MOVQ	·goHandler(SB), AX
	JMP	AX
drop:
	RET

// func filterAddress() uintptr
TEXT ·filterAddress(SB), NOSPLIT, $0-8
	LEAQ	filter<>(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

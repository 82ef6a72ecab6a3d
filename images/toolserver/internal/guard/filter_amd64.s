#include "textflag.h"

// The filter passes a signal on to Go's handler when it is a fault of our own,
// raised by the kernel (si_code > 0), or when kill(2) was called outside of
// this pid namespace (si_code == 0, si_pid == 0). A sender inside has a pid,
// and the kernel lets nobody claim an si_code of 0 or more for another process.
// It can be made to send an asynchronous signal itself, though, with F_SETSIG
// on a pipe: so an si_code above 0 counts only for the signals of faults, for
// which the kernel then writes SI_SIGIO, which is below.
//
// Called by the kernel with DI = signal, SI = siginfo, DX = context; it changes
// none of them, and AX belongs to nobody here.
TEXT filter<>(SB), NOSPLIT|NOFRAME, $0
	CMPL	DI, $32
	JGE	drop // real-time: nobody's, and deadly without a handler
	MOVL	8(SI), AX
	TESTL	AX, AX
	JLT	drop
	JGT	raised
	MOVL	16(SI), AX
	TESTL	AX, AX
	JNE	drop
pass:
	MOVQ	·goHandler(SB), AX
	JMP	AX
raised:
	MOVL	·faults(SB), AX
	BTL	DI, AX
	JCS	pass
drop:
	RET

// func filterAddress() uintptr
TEXT ·filterAddress(SB), NOSPLIT, $0-8
	LEAQ	filter<>(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

package proc

import (
	"os"
	"sync"
	"syscall"

	"rollcage.dev/toolserver/internal/quick"
)

// What a run's watch can see.
const (
	outBit uint32 = 1 << iota
	errBit
	deathBit
)

// A pipe holds at most this much (fs.pipe-max-size), so reading it empty never
// takes longer than reading this.
const pipeMax = 1 << 20

// As large as a pipe usually is: one read takes all there is.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// pipes are the descriptors of one run.
type pipes struct {
	watch *watch
	// out and err are our ends, err -1 when both streams are one.
	out, err       int
	stdout, stderr func([]byte)
	in             *os.File
	death          int
	// child are the other ends. They stay open on our side too: the end of a
	// stream would wake us a moment before the death that we wait for.
	child [3]int
}

func openPipes(command Command) (*pipes, error) {
	p := &pipes{
		out: -1, err: -1, death: -1, child: [3]int{Null(), -1, -1},
		stdout: command.Stdout, stderr: command.Stderr,
	}
	if err := p.open(command); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pipes) open(command Command) (err error) {
	if p.watch, err = newWatch(); err != nil {
		return err
	}
	if p.out, p.child[1], err = outputPipe(); err != nil {
		return err
	}
	if err = p.watch.add(p.out, outBit); err != nil {
		return err
	}
	p.child[2] = p.child[1]
	if command.Stderr != nil {
		p.child[2] = -1
		if p.err, p.child[2], err = outputPipe(); err != nil {
			return err
		}
		if err = p.watch.add(p.err, errBit); err != nil {
			return err
		}
	}
	if command.Stdin == nil {
		return nil
	}
	var ends [2]int
	if err = syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return err
	}
	quick.NonBlocking(ends[1])
	p.child[0], p.in = ends[0], os.NewFile(uintptr(ends[1]), "input")
	return nil
}

// outputPipe makes a pipe for a child to write to.
func outputPipe() (ours, childs int, err error) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	// Only our end: the child's must block, as programs expect.
	if err := quick.NonBlocking(ends[0]); err != nil {
		quick.Close(ends[0])
		quick.Close(ends[1])
		return -1, -1, err
	}
	return ends[0], ends[1], nil
}

// follow watches for the death of the process as well. Where that cannot be
// watched, the keeper wakes us.
func (p *pipes) follow(process *Process) {
	p.death = process.pidfd
	if p.child[0] != Null() {
		// Or the program would never see the end of its input.
		quick.Close(p.child[0])
		p.child[0] = Null()
	}
	if p.death >= 0 && p.watch.add(p.death, deathBit) != nil {
		process.listen()
	}
}

// feed writes beside the reading, or a program that answers before it has
// read everything would deadlock with us. close ends it.
func (p *pipes) feed(content []byte) {
	if p.in == nil {
		return
	}
	go func() {
		p.in.Write(content)
		p.in.Close()
	}()
}

// take hands over one read of each stream that is ready.
func (p *pipes) take(ready uint32) (taken int) {
	if ready&outBit != 0 {
		taken += p.read(p.out, p.stdout)
	}
	if ready&errBit != 0 {
		taken += p.read(p.err, p.stderr)
	}
	return taken
}

// drain hands over what is in the pipes now, without waiting for more: a
// process that we cannot kill may write for ever.
func (p *pipes) drain() {
	for total := 0; total < 2*pipeMax; {
		taken := p.take(p.watch.peek())
		if taken == 0 {
			return
		}
		total += taken
	}
}

func (p *pipes) read(fd int, sink func([]byte)) int {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	n, err := quick.Read(fd, buffer[:])
	if err != nil || n <= 0 {
		return 0
	}
	sink(buffer[:n])
	return n
}

func (p *pipes) close() {
	for _, fd := range []int{p.out, p.err, p.death} {
		if fd >= 0 {
			p.watch.remove(fd)
			quick.Close(fd)
		}
	}
	if p.child[0] != Null() {
		quick.Close(p.child[0])
	}
	if p.child[1] >= 0 {
		quick.Close(p.child[1])
	}
	if p.child[2] >= 0 && p.child[2] != p.child[1] {
		quick.Close(p.child[2])
	}
	if p.in != nil {
		p.in.Close()
	}
	if p.watch != nil {
		p.watch.release()
	}
}

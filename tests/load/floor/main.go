// Floor is the least that running a command can cost: fork, exec, wait, and
// nothing else. For each number on standard input it runs "/bin/sh -c true"
// that often and prints the nanoseconds of each.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strconv"
	"syscall"
	"time"
)

func main() {
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		times, err := strconv.Atoi(requests.Text())
		if err != nil {
			log.Fatal(err)
		}
		for range times {
			fmt.Print(forkExec().Nanoseconds(), " ")
		}
		fmt.Println()
	}
}

func forkExec() time.Duration {
	began := time.Now()
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "true"}, &syscall.ProcAttr{Env: os.Environ()})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		log.Fatal(err)
	}
	return time.Since(began)
}

/*
 * Holds a pod's namespaces open and reaps what is left to it. In C because
 * one runs in every pod, where every page counts 500 times.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int signal) { (void)signal; _exit(0); }

static void reap(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
}

int main(void) {
    struct sigaction on_stop = {.sa_handler = leave};
    struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
    if (sigaction(SIGINT, &on_stop, NULL) || sigaction(SIGTERM, &on_stop, NULL) ||
        sigaction(SIGCHLD, &on_child, NULL))
        return EXIT_FAILURE;
    for (;;) pause();
}

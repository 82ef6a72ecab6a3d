package agent

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"rollcage.dev/kind-node/node-network/cni"
)

// attach returns once everything that policies say about a pod is enforced.
func (a *Agent) attach(ctx context.Context, one Attachment) error {
	// What its address was allowed to go on with before, it is not any more. Looking for it takes long: the kernel
	// has no list of an address's connections.
	fresh, err := a.records.firstUse(one.Address)
	if err == nil && !fresh {
		err = a.kernel.ForgetConnections(one.Address.String())
	}
	if err != nil {
		return err
	}
	if err := a.records.keep(one); err != nil {
		return err
	}
	if before := a.state.attach(one); before != "" {
		if err := a.records.drop(before); err != nil {
			return err
		}
	}
	return a.state.Until(ctx, func() bool { return a.state.enforced[one.Address].UID == one.UID })
}

func (a *Agent) detach(container string) error {
	a.state.detach(container)
	return a.records.drop(container)
}

// Serve answers the node's network plug-in on a socket.
func (a *Agent) Serve(socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	return http.Serve(listener, a.handler())
}

func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+cni.AttachPath, func(w http.ResponseWriter, r *http.Request) {
		var one cni.Attachment
		answer(w, json.NewDecoder(r.Body).Decode(&one), func() error {
			return a.attach(r.Context(), Attachment(one))
		})
	})
	mux.HandleFunc("POST "+cni.DetachPath, func(w http.ResponseWriter, r *http.Request) {
		var one cni.Attachment
		answer(w, json.NewDecoder(r.Body).Decode(&one), func() error { return a.detach(one.Container) })
	})
	return mux
}

func answer(w http.ResponseWriter, err error, do func() error) {
	if err == nil {
		err = do()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

package agent

import (
	"context"
	"log"
	"time"

	"rollcage.dev/kind-node/node-network/kube"
	"rollcage.dev/kind-node/node-network/nft"
	"rollcage.dev/kind-node/node-network/policy"
)

const (
	podsPath       = "/api/v1/pods"
	namespacesPath = "/api/v1/namespaces"
	policiesPath   = "/apis/networking.k8s.io/v1/networkpolicies"

	// Changes within this time are told to the kernel together; the first of them is told at once.
	breath = 20 * time.Millisecond
	// Between two tries of something that failed.
	pause = time.Second
	// What takes longer is worth a line.
	long = 500 * time.Millisecond
)

// Kernel is told what to let through.
type Kernel interface {
	// Load runs an nft script, all of it or nothing.
	Load(script string) error
	// ForgetConnections makes every packet of an address a new one.
	ForgetConnections(address string) error
}

// Agent enforces policies on one node.
type Agent struct {
	state   *State
	client  *kube.Client
	kernel  Kernel
	records records
}

// New is an agent that remembers in a directory which pods the node has.
func New(node string, client *kube.Client, kernel Kernel, directory string) *Agent {
	return &Agent{NewState(node), client, kernel, records{directory}}
}

// Start follows the cluster, and returns once the kernel enforces what it says.
func (a *Agent) Start(ctx context.Context) error {
	known, err := a.records.all()
	if err != nil {
		return err
	}
	for _, one := range known {
		a.state.attach(one)
	}
	go kube.Follow(ctx, a.client, podsPath, podFollower{a.state})
	go kube.Follow(ctx, a.client, namespacesPath, namespaceFollower{a.state})
	go kube.Follow(ctx, a.client, policiesPath, policyFollower{a.state})
	go a.vet(ctx)
	// Not before it is known what to say about everybody who is there: until then the kernel goes on as it was told.
	complete := func() bool { return len(a.state.listed) == 3 && len(a.state.unvetted()) == 0 }
	if err := a.state.Until(ctx, complete); err != nil {
		return err
	}
	go a.enforce(ctx)
	return a.state.Until(ctx, func() bool { return a.state.applied > 0 })
}

// enforce tells the kernel whatever changes, as little as possible at a time.
func (a *Agent) enforce(ctx context.Context) {
	var told nft.Table
	whole := true
	changed := func() bool { return a.state.generation > a.state.applied }
	for a.state.Until(ctx, changed) == nil {
		began := time.Now()
		seen, generation := a.state.seen()
		wanted := policy.Decide(seen)
		script := nft.Whole(wanted)
		if !whole {
			script = nft.Change(told, wanted)
		}
		if script != "" {
			if err := a.kernel.Load(script); err != nil {
				log.Printf("nft refused: %v\n%s", err, script)
				// Whatever the kernel has now: the next try replaces all of it.
				whole = true
				time.Sleep(pause)
				continue
			}
		}
		told, whole = wanted, false
		a.state.change(func() {
			a.state.applied = generation
			a.state.enforced = seen.Here
		})
		if took := time.Since(began); took > long {
			log.Printf("telling the kernel about %d pods took %v", len(seen.Here), took)
		}
		time.Sleep(breath)
	}
}

// vet makes certain that policies older than a pod are known before the pod
// gets anything through: they come by another way than the pods, perhaps later.
func (a *Agent) vet(ctx context.Context) {
	for {
		var pending []string
		if a.state.Until(ctx, func() bool { pending = a.state.unvetted(); return len(pending) > 0 }) != nil {
			return
		}
		var list kube.List[policyObject]
		err := a.client.Get(ctx, policiesPath, &list)
		if err == nil {
			// One that was deleted meanwhile never comes: then a new list shows it.
			short, cancel := context.WithTimeout(ctx, pause)
			err = a.state.Until(short, func() bool { return a.state.knows(list.Items) })
			cancel()
		}
		if err != nil {
			log.Printf("vetting %d pods: %v", len(pending), err)
			time.Sleep(breath)
			continue
		}
		a.state.change(func() {
			for _, uid := range pending {
				a.state.vetted[uid] = true
			}
			a.state.generation++
		})
	}
}

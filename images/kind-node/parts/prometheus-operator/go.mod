// The definitions of the Prometheus operator's resources; nothing of it is built.
module rollcage.dev/kind-node/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0

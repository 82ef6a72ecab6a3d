module rollcage.dev/kind-node/node-network

go 1.26

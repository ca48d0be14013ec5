// The store below the API server. 3.5 can report watch progress, 3.4 cannot.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}

// kfake as a server of one broker: kfake TOPIC PARTITIONS. It says where it listens, and ends on SIGTERM.
package main

import (
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: kfake TOPIC PARTITIONS")
	}
	partitions, err := strconv.ParseInt(os.Args[2], 10, 32)
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	fmt.Println("listening on", cluster.ListenAddrs()[0])
	<-stop
}

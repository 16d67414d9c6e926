// A registry of the distribution project, in memory on loopback, for the tests of our client.
// Prints its port on the first line; ends when standard input does.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/sirupsen/logrus"
)

func main() {
	logrus.SetOutput(io.Discard)
	config := &configuration.Configuration{Storage: configuration.Storage{"inmemory": configuration.Parameters{}}}
	config.Catalog.MaxEntries = 100
	config.HTTP.Secret = "oracle"
	app := handlers.NewApp(context.Background(), config)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() { _ = http.Serve(listener, app) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

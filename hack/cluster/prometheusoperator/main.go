// Prints the version of prometheus-operator whose CRDs the tests use. The import keeps the module in go.mod.
package main

import (
	"os"

	"github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
)

func main() { versionutil.Print(os.Stdout, "prometheus-operator") }

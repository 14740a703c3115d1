package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"isthmus/e2e/clients"
	"isthmus/e2e/gateway"
)

var (
	gatewayBinary string // the gateway, built once
	work          string // e2e/.work: caches of builds, ignored by git
)

func TestMain(m *testing.M) {
	if os.Getenv(memberEnv) != "" {
		if err := clients.RunMember(os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "member:", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func setUp() error {
	// The statements' tests mostly wait (a rebalance, a ready client), so more of them run at once than there are cores.
	if flag.Lookup("test.parallel").Value.String() == flag.Lookup("test.parallel").DefValue {
		flag.Set("test.parallel", "4")
	}
	raiseFileLimit()
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	work = filepath.Join(root, "e2e", ".work")
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	gatewayBinary, err = gateway.Build(ctx, root, work)
	return err
}

// raiseFileLimit lifts the soft limit to the hard one; the gateway inherits it.
func raiseFileLimit() uint64 {
	var l syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	l.Cur = l.Max
	syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	return l.Cur
}

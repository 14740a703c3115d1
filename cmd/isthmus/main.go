package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Run     runCommand       `cmd:"" help:"Start the gateway."`
	Check   checkCommand     `cmd:"" help:"Read a configuration and print every fault with its line."`
	Explain explainCommand   `cmd:"" help:"Show where one message would go."`
	Topic   topicCommand     `cmd:"" help:"Look at the topics of a running gateway, and change them."`
	Group   groupCommand     `cmd:"" help:"Look at the groups of a running gateway, and change them."`
	Fsck    fsckCommand      `cmd:"" help:"Examine the data folder of a stopped gateway, and repair it."`
	Version kong.VersionFlag `help:"Print the version."`
}

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command: 0 done, 1 failed, 2 not understood, or what an exitError says. Errors go to stderr.
func execute(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	exit := -1                   // set when kong has answered itself: --help, --version
	parser, err := kong.New(&cli{}, kong.Name("isthmus"), kong.Writers(stdout, stderr),
		kong.Description("A gateway for MQTT, Apache Pulsar and Apache RocketMQ clients over one log."),
		kong.Exit(func(code int) { exit = code }), kong.Vars{"version": version()},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&streams{stdout, stderr}))
	if err != nil {
		fmt.Fprintln(stderr, "isthmus:", err)
		return 2
	}
	command, err := parser.Parse(args)
	if exit >= 0 {
		return exit
	}
	if err != nil {
		fmt.Fprintln(stderr, "isthmus:", err)
		if len(args) == 0 || args[0] == "help" {
			fmt.Fprintln(stderr, "isthmus --help lists all commands")
		}
		return 2
	}
	if err := command.Run(); err != nil {
		fmt.Fprintln(stderr, err)
		if own := (exitError{}); errors.As(err, &own) {
			return own.code
		}
		return 1
	}
	return 0
}

type streams struct{ out, err io.Writer }

type runCommand struct {
	Config   string `help:"Configuration file; without one all protocols listen on loopback." placeholder:"FILE" type:"existingfile"`
	LogLevel string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
	LogJSON  bool   `help:"Log JSON lines." name:"log-json"`
}

// Run starts the gateway and returns when it has stopped in good order.
func (r *runCommand) Run(ctx context.Context, s *streams) error {
	cfg, err := LoadConfig(r.Config)
	if err != nil {
		return err
	}
	log, err := r.logger(s.err)
	if err != nil {
		return err
	}
	routes, err := cfg.Routes()
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings(routes) {
		log.Warn("configuration may surprise", "detail", w)
	}
	if err := run(ctx, cfg, log); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("isthmus: %w", err)
	}
	return nil
}

func (r *runCommand) logger(w io.Writer) (*slog.Logger, error) {
	var o slog.HandlerOptions
	var level slog.Level
	if err := level.UnmarshalText([]byte(r.LogLevel)); err != nil {
		return nil, err
	}
	o.Level = level
	if r.LogJSON {
		return slog.New(slog.NewJSONHandler(w, &o)), nil
	}
	return slog.New(slog.NewTextHandler(w, &o)), nil
}

type checkCommand struct {
	File string `arg:"" help:"Configuration file."`
}

// Run prints warnings and a line that says what was read; faults are the error.
func (c *checkCommand) Run(s *streams) error {
	cfg, err := LoadConfig(c.File)
	if err != nil {
		return err
	}
	routes, err := cfg.Routes()
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings(routes) {
		fmt.Fprintf(s.err, "%s: warning: %s\n", c.File, w)
	}
	_, err = fmt.Fprintf(s.out, "%s: ok: %d listeners, %d topics, %d mappings\n", c.File, len(cfg.Listeners.Keys), len(cfg.Topics.Keys), len(cfg.Mappings))
	return err
}

// version is the module version or the commit that the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.Main.Version + " " + s.Value
		}
	}
	return info.Main.Version
}

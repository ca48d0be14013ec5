// A step plugin in Go, without any library: it succeeds as soon as the Rollout has the wanted number
// of available replicas (config.available). Protocol gradus-plugin, version 1; see docs/plugins.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type request struct {
	ID     uint64 `json:"id"`
	Method string `json:"method"`
	Params struct {
		Rollout struct {
			Metadata struct{ Name string }
			Status   struct{ AvailableReplicas int }
		}
		Context struct {
			Config struct{ Available int }
		}
	} `json:"params"`
}

type result struct {
	Phase               string `json:"phase"`
	Message             string `json:"message"`
	RequeueAfterSeconds int    `json:"requeueAfterSeconds,omitempty"`
}

func answer(r request) (any, error) {
	switch r.Method {
	case "Run":
		has, wants := r.Params.Rollout.Status.AvailableReplicas, r.Params.Context.Config.Available
		message := fmt.Sprintf("%d of %d replicas are available", has, wants)
		fmt.Fprintf(os.Stderr, "%s: %s\n", r.Params.Rollout.Metadata.Name, message)
		if has < wants {
			return result{Phase: "Running", Message: message, RequeueAfterSeconds: 15}, nil
		}
		return result{Phase: "Successful", Message: message}, nil
	case "Terminate", "Abort":
		return result{Phase: "Successful"}, nil
	case "Type":
		return "example-go-step", nil
	case "InitPlugin", "Ping", "Quit":
		return nil, nil
	}
	return nil, fmt.Errorf("no method %s", r.Method)
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.Encode(map[string]any{"protocol": "gradus-plugin", "version": 1, "kind": "step"})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20) // A Rollout may be large.
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		value, err := answer(r)
		if err != nil {
			out.Encode(map[string]any{"id": r.ID, "error": err.Error()})
			continue
		}
		out.Encode(map[string]any{"id": r.ID, "result": value})
		if r.Method == "Quit" {
			return
		}
	}
}

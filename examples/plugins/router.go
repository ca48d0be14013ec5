// A traffic plugin in Go, without any library: it writes the canary's weight into a file that a proxy
// reads (config.file; "weight" if left out). Protocol gradus-plugin, version 1; see docs/plugins.md.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

type plugins struct {
	Plugins map[string]struct{ File string }
}

type route struct{ Match []any }

type request struct {
	ID     uint64 `json:"id"`
	Method string `json:"method"`
	Params struct {
		DesiredWeight                  int
		SetHeaderRoute, SetMirrorRoute route
		Rollout                        struct {
			Spec struct {
				Strategy struct {
					Canary struct{ TrafficRouting plugins }
				}
			}
		}
	} `json:"params"`
}

func answer(r request) (any, error) {
	file := r.Params.Rollout.Spec.Strategy.Canary.TrafficRouting.Plugins["example/file"].File
	if file == "" {
		file = "weight"
	}
	weight := fmt.Sprintf("%d\n", r.Params.DesiredWeight)
	switch r.Method {
	case "SetWeight":
		// Written beside it and renamed: nobody reads half of it, and it may be done again.
		if err := os.WriteFile(file+".new", []byte(weight), 0o644); err != nil {
			return nil, err
		}
		return nil, os.Rename(file+".new", file)
	case "VerifyWeight":
		found, err := os.ReadFile(file)
		return map[string]any{"verified": string(found) == weight}, err
	case "Type":
		return "example-file", nil
	case "SetHeaderRoute", "SetMirrorRoute":
		if len(r.Params.SetHeaderRoute.Match)+len(r.Params.SetMirrorRoute.Match) > 0 {
			return nil, fmt.Errorf("only weights can be set")
		}
		return nil, nil // A route is to go, and there is none.
	case "InitPlugin", "Ping", "Quit", "UpdateHash", "RemoveManagedRoutes":
		return nil, nil
	}
	return nil, fmt.Errorf("no method %s", r.Method)
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.Encode(map[string]any{"protocol": "gradus-plugin", "version": 1, "kind": "router"})
	in := json.NewDecoder(os.Stdin)
	for {
		var r request
		if in.Decode(&r) != nil {
			return // Nobody asks any more.
		}
		if value, err := answer(r); err != nil {
			out.Encode(map[string]any{"id": r.ID, "error": err.Error()})
		} else {
			out.Encode(map[string]any{"id": r.ID, "result": value})
		}
		if r.Method == "Quit" {
			return
		}
	}
}

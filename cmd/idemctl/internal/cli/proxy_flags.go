package cli

import "fmt"

// directiveFlag is a flag that is a directive of proxy's file too.
type directiveFlag struct {
	name, kind string
	set        map[string]string
}

func (f directiveFlag) Set(text string) error {
	if text == "" { // as a script's variable is when something went wrong
		return &flagError{"--" + f.name + " is empty"}
	}
	f.set[f.name] = text
	return nil
}

func (f directiveFlag) String() string { return f.set[f.name] }
func (f directiveFlag) Type() string   { return f.kind }

// routeFlags are --route and --policy, in the order in which they were given.
type routeFlags struct {
	policy string // given before any route
	all    []flaggedRoute
}

type flaggedRoute struct{ text, policy string }

// routeFlag is --route. A route may hold commas, so it is no list.
type routeFlag struct{ flags *routeFlags }

func (f routeFlag) Set(text string) error {
	if text == "" {
		return &flagError{"--route is empty"}
	}
	f.flags.all = append(f.flags.all, flaggedRoute{text: text})
	return nil
}

func (f routeFlag) String() string { return "" }
func (f routeFlag) Type() string   { return "PATTERN" }

// policyFlag is --policy, which belongs to the --route before it.
type policyFlag struct{ flags *routeFlags }

func (f policyFlag) Set(name string) error {
	if name == "" {
		return &flagError{"--policy is empty"}
	}
	policy, of := &f.flags.policy, "of all routes"
	if last := len(f.flags.all) - 1; last >= 0 {
		policy, of = &f.flags.all[last].policy, "of --route "+fmt.Sprintf("%q", f.flags.all[last].text)
	}
	if *policy != "" {
		return &flagError{fmt.Sprintf("--policy %s: the policy %s is %s already", name, of, *policy)}
	}
	*policy = name
	return nil
}

func (f policyFlag) String() string { return "" }
func (f policyFlag) Type() string   { return "NAME" }

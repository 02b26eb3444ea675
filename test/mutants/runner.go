package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// runner tries mutants.
type runner struct {
	gotest gotest
	// jobs is how many are tried at once.
	jobs int
	out  io.Writer
}

// result is what came of a mutant.
type result struct {
	mutant mutant
	// killed is the test that noticed; empty when none did.
	killed string
	// hung: it noticed by not coming to an end.
	hung bool
	took time.Duration
}

const (
	// baselineTimeout bounds the tests of a package on the code as it is.
	baselineTimeout = 30 * time.Minute
	// leastTimeout is what the tests of a mutant may take at least; beyond that it is
	// hangFactor times what they took without one.
	leastTimeout = time.Minute
	hangFactor   = 3
)

// run returns what comes of the mutants, in their order. An error is one of the list
// or of the machine, or a test that fails without any mutant.
func (r runner) run(ctx context.Context, all []mutant) ([]result, error) {
	files, err := r.files(ctx, all)
	if err != nil {
		return nil, err
	}
	took, err := r.baseline(ctx, union(all))
	if err != nil {
		return nil, err
	}
	cost := func(m mutant) time.Duration {
		least := baselineTimeout
		for _, t := range m.tests {
			least = min(least, took[t.pkg])
		}
		return least
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cost(all[a]), cost(all[b])) })

	results := make([]result, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.jobs)
	var (
		lock sync.Mutex
		done int
	)
	for _, i := range order {
		group.Go(func() error {
			result, err := r.try(ctx, all[i], files[i], took)
			if err != nil {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			results[i] = result
			done++
			fmt.Fprintf(r.out, "%3d of %d  %-60s %s\n", done, len(all), all[i].name, result)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return results, nil
}

// files returns what each mutant makes of its file. It tells of all that are no mutants
// before any test is run.
func (r runner) files(ctx context.Context, all []mutant) ([]overlay, error) {
	fmt.Fprintf(r.out, "compiling %d mutants\n", len(all))
	files, faults := make([]overlay, len(all)), make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(r.jobs)
	for i, m := range all {
		group.Go(func() error {
			text, err := m.mutated(r.gotest.root)
			if err != nil {
				faults[i] = err
				return nil
			}
			files[i] = overlay{m.file, text}
			if err := r.gotest.compile(ctx, files[i]); err != nil {
				faults[i] = fmt.Errorf("mutant %q: %w", m.name, err)
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, context.Cause(ctx)
	}
	return files, errors.Join(faults...)
}

// baseline runs the tests without any mutant, and returns how long those of each
// package take.
func (r runner) baseline(ctx context.Context, packages []tests) (map[string]time.Duration, error) {
	took := map[string]time.Duration{}
	for _, t := range packages {
		fmt.Fprintf(r.out, "without a mutant: %-40s ", t.pkg)
		v, err := r.gotest.test(ctx, t, nil, baselineTimeout)
		if err != nil {
			return nil, err
		}
		if v.failed != "" {
			return nil, fmt.Errorf("%s fails without any mutant, so that it proves nothing; mend it first:\n%s", v.failed, v.output)
		}
		took[t.pkg] = v.took
		fmt.Fprintf(r.out, "%.1f s\n", v.took.Seconds())
	}
	return took, nil
}

// try runs the tests of one mutant until one fails, those first that take least time.
func (r runner) try(ctx context.Context, m mutant, o overlay, took map[string]time.Duration) (result, error) {
	began := time.Now()
	res := result{mutant: m}
	inOrder := slices.Clone(m.tests)
	slices.SortStableFunc(inOrder, func(a, b tests) int { return cmp.Compare(took[a.pkg], took[b.pkg]) })
	for _, t := range inOrder {
		v, err := r.gotest.test(ctx, t, &o, leastTimeout+hangFactor*took[t.pkg])
		if err != nil {
			return result{}, fmt.Errorf("mutant %q: %w", m.name, err)
		}
		if v.failed != "" {
			res.killed, res.hung = v.failed, v.hung
			break
		}
	}
	res.took = time.Since(began)
	return res, nil
}

// survivors returns the names of those that no test noticed.
func survivors(results []result) []string {
	var names []string
	for _, r := range results {
		if r.killed == "" {
			names = append(names, r.mutant.name)
		}
	}
	return names
}

// String tells what came of a mutant.
func (r result) String() string {
	how := "survives"
	switch {
	case r.killed != "" && r.hung:
		how = "killed by " + r.killed + ", which hangs"
	case r.killed != "":
		how = "killed by " + r.killed
	}
	return fmt.Sprintf("%s (%.1f s)", how, r.took.Seconds())
}

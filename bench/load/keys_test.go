package load

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestKeysAreDistributedEvenly(t *testing.T) {
	k := newKeys(30_000)
	of := make([]int, 3)
	for _, name := range k.names {
		of[modulo(name, 3)]++
	}
	for shard, n := range of {
		if n < 9_500 || n > 10_500 {
			t.Errorf("shard %d has %d of 30,000 keys", shard, n)
		}
	}
}

func TestKeysAreSelectedByZipfsLaw(t *testing.T) {
	const picks = 400_000
	k := newKeys(1000)
	harmonic := 0.0
	for r := 1; r <= 1000; r++ {
		harmonic += math.Pow(float64(r), -0.99)
	}
	of := make([]float64, 1000)
	random := rand.New(rand.NewPCG(1, 2))
	for range picks {
		of[k.pick(random)]++
	}
	for _, rank := range []int{1, 2, 10, 100} {
		want := picks * math.Pow(float64(rank), -0.99) / harmonic
		if got := of[rank-1]; math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("the key of rank %d was selected %v times, want about %v", rank, got, want)
		}
	}
	if of[999] == 0 {
		t.Error("the last key is never selected")
	}
}

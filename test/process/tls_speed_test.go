package process

import "slices"

func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return values[int(float64(len(values)-1)*q)]
}

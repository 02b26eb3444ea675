package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// UnmarshalJSON reads a spec, also one with a field that cannot be read. The API server
// takes quantities that Go's own type does not, such as 1e1.5, and a list with one of
// them would be unreadable as a whole: one Memcached would blind the operator to all.
func (s *MemcachedSpec) UnmarshalJSON(raw []byte) error {
	type plain MemcachedSpec
	whole := plain{}
	if err := json.Unmarshal(raw, &whole); err == nil {
		*s = MemcachedSpec(whole)
		return nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	var unread []error
	readable := plain{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err != nil {
			return err
		}
		before := readable
		if err := json.Unmarshal(one, &readable); err != nil {
			readable = before
			unread = append(unread, fmt.Errorf("spec.%s: %w", name, err))
		}
	}
	if err := errors.Join(unread...); err != nil {
		readable.Unreadable = err.Error()
	}
	*s = MemcachedSpec(readable)
	return nil
}

package protocol

import "math"

// maxNames bounds the names that EachName collects, in bytes.
const maxNames = 4 << 20

// Names are keys in a row.
type Names []byte

// Next removes the first key, of which there must be one, and returns it.
func (n *Names) Next() []byte {
	end := 1 + (*n)[0]
	key := (*n)[1:end]
	*n = (*n)[end:]
	return key
}

// EachName calls then with the keys of all items of a dump for which which returns true. Each dump is read without a pause: memcached may
// lock items, or lose keys, while a client reads slowly. So then is called after it. Where there are more keys than the memory
// holds, another dump shows those whose hash is higher.
func EachName(dump func(visit func(Listed) error) error, hash func(key []byte) uint64, which func(Listed) bool, then func(Names) error) error {
	for from := uint64(0); ; {
		var names Names
		to := uint64(math.MaxUint64)
		err := dump(func(listed Listed) error {
			h := hash(listed.Key)
			if h < from || !which(listed) {
				return nil
			}
			for h <= to && len(names)+1+len(listed.Key) > maxNames {
				to = from + (to-from)/2
				rest := names
				for names = names[:0]; len(rest) > 0; {
					if key := rest.Next(); hash(key) <= to {
						names = append(append(names, byte(len(key))), key...)
					}
				}
			}
			if h <= to {
				names = append(append(names, byte(len(listed.Key))), listed.Key...)
			}
			return nil
		})
		if err == nil {
			err = then(names)
		}
		if err != nil || to == math.MaxUint64 {
			return err
		}
		from = to + 1
	}
}

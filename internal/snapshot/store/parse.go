package store

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Parse returns the store that a user specified, as a folder that exists or as a URL
// s3://BUCKET/PREFIX?endpoint=URL&region=REGION&ca=FILE.
func Parse(location string) (wire.Store, error) {
	if !strings.Contains(location, "://") {
		folder, err := filepath.Abs(location)
		if err == nil {
			_, err = os.Stat(folder) // Open would create it
		}
		return wire.Store{Folder: folder}, err
	}
	u, err := url.Parse(location)
	if err != nil {
		return wire.Store{}, fmt.Errorf("parsing the store's URL: %w", err)
	}
	if u.Scheme != "s3" || u.Host == "" {
		return wire.Store{}, fmt.Errorf("%s is neither a folder nor s3://BUCKET", location)
	}
	s := &wire.S3{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	parameters := map[string]*string{"endpoint": &s.Endpoint, "region": &s.Region, "ca": &s.CAFile}
	for name, values := range u.Query() {
		field, ok := parameters[name]
		if !ok || len(values) != 1 {
			return wire.Store{}, fmt.Errorf("parameter %s of %s: endpoint, region and ca are allowed once each", name, location)
		}
		*field = values[0]
	}
	return wire.Store{S3: s}, nil
}

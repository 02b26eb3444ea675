package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// Bounds of what is asked of S3: see doc.go.
const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = time.Minute
	attempts      = 4
	maxBackoff    = 5 * time.Second
)

// defaultRegion is where Amazon looks for a bucket of which no region is told; most
// other servers do not care.
const defaultRegion = "us-east-1"

func openS3(ctx context.Context, s snapshotapi.S3) (*blob.Bucket, error) {
	keys, err := credentialsFromEnvironment()
	if err != nil {
		return nil, err
	}
	httpClient, err := newHTTPClient(s.CAFile)
	if err != nil {
		return nil, err
	}
	region := s.Region
	if region == "" {
		region = defaultRegion
	}
	// Options made here, not the SDK's default configuration: that one reads files of
	// the home folder, and asks the node's metadata service for credentials.
	options := s3.Options{
		Region:      region,
		Credentials: keys,
		HTTPClient:  httpClient,
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = attempts
			o.MaxBackoff = maxBackoff
			// What will be the same the next time: the SDK takes it for a bad connection.
			stays := retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				if isUntrusted(err) || isNotTLS(err) {
					return aws.FalseTernary
				}
				return aws.UnknownTernary
			})
			o.Retryables = append([]retry.IsErrorRetryable{stays}, o.Retryables...)
		}),
		// Many servers know no checksums but MD5; a snapshot has its own.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if s.Endpoint != "" {
		options.BaseEndpoint = aws.String(strings.TrimSuffix(s.Endpoint, "/"))
		// Its certificate and DNS name need not know of buckets.
		options.UsePathStyle = true
	}
	bucket, err := s3blob.OpenBucket(ctx, s3.New(options), s.Bucket, &s3blob.Options{
		RequestChecksumCalculation: options.RequestChecksumCalculation,
	})
	if err != nil {
		return nil, Failure(err, "opening the bucket "+s.Bucket)
	}
	if prefix := strings.Trim(s.Prefix, "/"); prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix+"/")
	}
	if err := probe(ctx, bucket); err != nil {
		_ = bucket.Close() // it holds nothing that could be lost
		where := "Amazon S3"
		if s.Endpoint != "" {
			where = s.Endpoint
		}
		return nil, Failure(err, "opening the bucket "+s.Bucket+" at "+where)
	}
	return bucket, nil
}

// credentialsFromEnvironment returns what the Job got from its Secret.
func credentialsFromEnvironment() (aws.CredentialsProvider, error) {
	// A Secret that was made of a file often ends in a line break, and no key has one.
	get := func(name string) string { return strings.TrimSpace(os.Getenv(name)) }
	id, secret := get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret} {
		if value == "" {
			return nil, snapshotapi.FailFinally(v1alpha1.ReasonStoreAccessDenied,
				"the credentials lack %s; put the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY into the Secret that credentialsSecret names", name)
		}
	}
	return credentials.NewStaticCredentialsProvider(id, secret, get("AWS_SESSION_TOKEN")), nil
}

// newHTTPClient returns a client that trusts the authorities of caFile, or the
// system's if there is none, and takes its proxy from the environment.
func newHTTPClient(caFile string) (*http.Client, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, snapshotapi.FailFinally(v1alpha1.ReasonStoreCertificate, "reading the certificates of the store's authority: %w; put them into the key ca.crt of the Secret that caSecret names", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, snapshotapi.FailFinally(v1alpha1.ReasonStoreCertificate, "the key ca.crt of the Secret that caSecret names holds no certificate as PEM")
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: trust,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return idleConn{conn}, nil
		},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: answerTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   16, // as many as shards are copied at once
	}
	return &http.Client{
		Transport: transport,
		// Amazon redirects to the bucket's region, for which the signature is wrong.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// idleConn is given up once nothing moved on it for idleTimeout. A write extends
// the time of a read that waits too: the answer comes after a long request.
type idleConn struct{ net.Conn }

func (c idleConn) Read(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c idleConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

package store

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"parley"
)

// s3 is a store in a bucket.
type s3 struct {
	client         *minio.Client
	bucket, prefix string // the prefix is empty or ends with a slash
	most           int    // names of a listing
	pages          *boundedPages
}

// Bounds of a listing, against a server that goes on for ever.
const (
	maxListed      = 1 << 20 // names
	maxListedBytes = 8 << 20 // of one page, which has 1000 names
)

// errTooMany reports a listing that is longer than the reader accepts.
var errTooMany = errors.New("the listing is longer than it should be")

// boundedPages is a transport that ends pages of listings after some bytes.
type boundedPages struct {
	http.RoundTripper
	most int
}

// RoundTrip implements http.RoundTripper.
func (b *boundedPages) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Has("list-type") {
		resp.Body = &boundedPage{resp.Body, b.most}
	}
	return resp, err
}

// boundedPage is a body that fails with errTooMany after some bytes.
type boundedPage struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (p *boundedPage) Read(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, errTooMany
	}
	n, err := p.ReadCloser.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}

// attempts is how often a request is made that fails in a way that may pass.
const attempts = 3

// openS3 returns the store of BUCKET/PREFIX. It reads the environment as other S3 clients do: AWS_ENDPOINT_URL_S3 or
// AWS_ENDPOINT_URL, AWS_REGION or AWS_DEFAULT_REGION, and the credentials. Those are in AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY, or in MINIO_ROOT_USER and MINIO_ROOT_PASSWORD. They may also be in the file
// ~/.aws/credentials, or those of the machine that it runs on.
func openS3(place string) (Store, error) {
	bucket, prefix, _ := strings.Cut(place, "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		if !fs.ValidPath(prefix) {
			return nil, parley.Refuse(parley.InvalidArgument, "%.200q is no prefix in a bucket", prefix)
		}
		prefix += "/"
	}
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com")
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || strings.Trim(at.Path, "/") != "" {
		return nil, parley.Refuse(parley.InvalidArgument, "%.200q is no address of an S3 server", endpoint).
			WithHint("AWS_ENDPOINT_URL is as https://s3.example.com")
	}
	transport, err := minio.DefaultTransport(at.Scheme == "https")
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the archive at %s%s cannot be used: %v", s3Scheme, place, err)
	}
	pages := &boundedPages{transport, maxListedBytes}
	client, err := minio.New(at.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
		Secure:     at.Scheme == "https",
		Region:     cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
		MaxRetries: attempts,
		Transport:  pages,
	})
	if err == nil {
		err = s3utils.CheckValidBucketName(bucket)
	}
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the archive at %s%s cannot be used: %v", s3Scheme, place, err)
	}
	return &s3{client: client, bucket: bucket, prefix: prefix, most: maxListed, pages: pages}, nil
}

// String implements Store.
func (s *s3) String() string { return s3Scheme + strings.TrimSuffix(s.bucket+"/"+s.prefix, "/") }

// Put implements Store. The server checks the content against its SHA-256.
func (s *s3) Put(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	_, err := s.client.PutObject(ctx, s.bucket, s.prefix+name, io.NewSectionReader(content, 0, size), size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", DisableMultipart: size <= maxPut,
	})
	return absent(err)
}

// maxPut is the size up to which a file is sent in one request. So an upload that ends early leaves nothing.
const maxPut = 1 << 30

// Get implements Store.
func (s *s3) Get(ctx context.Context, name string, limit int64, w io.Writer) error {
	object, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return absent(err)
	}
	defer object.Close() //nolint:errcheck // it was only read
	return absent(bounded(ctx, w, object, limit))
}

// Size implements Store.
func (s *s3) Size(ctx context.Context, name string) (int64, error) {
	info, err := s.client.StatObject(ctx, s.bucket, s.prefix+name, minio.StatObjectOptions{})
	return info.Size, absent(err)
}

// List implements Store. It leaves out keys that are no names of files in the folder, whatever the server lists.
func (s *s3) List(ctx context.Context, under string) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // it ends the listing
	var names []string
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + under + "/"}) {
		if o.Err != nil {
			return nil, absent(o.Err)
		}
		if name, ok := strings.CutPrefix(o.Key, s.prefix); ok && fs.ValidPath(name) && path.Dir(name) == under {
			names = append(names, name)
		}
		if len(names) > s.most {
			return nil, errTooMany
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// absent returns fs.ErrNotExist for the answer that there is no such file.
func absent(err error) error {
	if r, ok := errors.AsType[minio.ErrorResponse](err); ok && r.StatusCode == http.StatusNotFound && r.Code != "NoSuchBucket" {
		return fs.ErrNotExist
	}
	return err
}

module github.com/idembolt/idem/examples/chi

go 1.25.0

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/idembolt/idem v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

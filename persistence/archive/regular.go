package archive

import "parley/internal/regular"

var (
	OpenRegular   = regular.Open
	ReadRegular   = regular.Read
	CreateRegular = regular.Create

	errNotRegular = regular.ErrNot
)

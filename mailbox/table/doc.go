// Package table holds maps in pages, most of which need not be in memory: ordered ones, and ones from random digests.
//
// A page is a range of the keys, with at most 1,024 entries. A page that is sealed can be stored under the SHA-256 sum of
// its bytes, and may then leave memory. A method that needs a page which is not in memory fails with PagedOut. The caller
// reads the page, brings it back with PageIn, and calls again. Head is the table without its stored pages.
//
// A Table keeps keys in order. With random keys, each new one would open another page. So Digests keep new entries in
// memory until there are 8,192. They then make a Table of them, which never changes again.
//
// Promised: a table with absent pages has the same entries as the whole one. Lookups change nothing.
//
// Not promised: that equal tables have equal pages, as these follow from the order of the changes. A Table and
// Digests are not safe for concurrent use.
package table

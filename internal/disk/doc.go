// Package disk says what is the matter when the system refuses to read or write a file. Who reads it has to know that first: a full disk,
// a file system that an error has made read-only and a file of another user are mended in three ways, and none by another folder.
package disk

// Package disk is the default tenant of the durability seam: pre-allocated segments that double from
// 1 MiB to 64 MiB and are recycled, one pwrite and one fdatasync per Append.
package disk

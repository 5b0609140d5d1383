// What of Linux the toolchain's Glibc module leaves out.
#include <sys/vfs.h>
#include <sys/xattr.h>

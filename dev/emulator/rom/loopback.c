// loopback.c - preloaded into slirp; replaces three functions that it calls.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

// slirp would listen on all addresses: listen on loopback only.
int bind(int fd, const struct sockaddr *address, socklen_t length) {
    static int (*next)(int, const struct sockaddr *, socklen_t);
    struct sockaddr_in local;
    int one = 1;
    if (!next) {
        next = dlsym(RTLD_NEXT, "bind");
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (address && address->sa_family == AF_INET && length >= sizeof local) {
        memcpy(&local, address, sizeof local);
        if (local.sin_addr.s_addr == INADDR_ANY) {
            local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            address = (void *)&local;
            length = sizeof local;
        }
    }
    return next(fd, address, length);
}

// slirp uses this host's address for its own end of PPP, which must not be loopback's.
struct hostent *gethostbyname(const char *name) {
    static struct in_addr address;
    static char *addresses[2];
    static char *aliases[1];
    static struct hostent found;
    address.s_addr = htonl(0x0a000202);
    addresses[0] = (char *)&address;
    found.h_name = (char *)name;
    found.h_aliases = aliases;
    found.h_addrtype = AF_INET;
    found.h_length = sizeof address;
    found.h_addr_list = addresses;
    return &found;
}

// A small send buffer towards clients, so that a client that does not read soon closes the board's
// window, as on a real network.
int accept(int fd, struct sockaddr *address, socklen_t *length) {
    static int (*next)(int, struct sockaddr *, socklen_t *);
    int size = 4096, accepted;
    if (!next) {
        next = dlsym(RTLD_NEXT, "accept");
    }
    accepted = next(fd, address, length);
    if (accepted >= 0) {
        setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
    return accepted;
}

/* Users: a process acts for one, and what it has in use of the kernel's memory counts against that one's account, which all of the
   user's processes share. Held by those processes and by what is in use, an account is forgotten when nobody holds it. */

#include "kernel.h"

#define ACCOUNTS_MAX 64

struct account {
    uint32_t user;
    unsigned holders; /* 0: free */
    uint64_t in_use;
};

static struct lock lock;
static struct account accounts[ACCOUNTS_MAX];

struct account *account_of(uint32_t user)
{
    struct account *found = 0;
    uint64_t saved = acquire(&lock);
    for (int i = 0; i < ACCOUNTS_MAX; i++) {
        struct account *account = &accounts[i];
        if (account->holders && account->user == user) {
            found = account;
            break;
        }
        if (!account->holders && !found)
            found = account;
    }
    if (found) {
        found->user = user;
        found->holders++;
    }
    release(&lock, saved);
    return found;
}

void account_leave(struct account *account)
{
    uint64_t saved = acquire(&lock);
    account->holders--;
    release(&lock, saved);
}

int account_take(struct account *account, uint64_t most)
{
    uint64_t saved = acquire(&lock);
    int is_less = account->in_use < most;
    account->in_use += is_less;
    account->holders += is_less;
    release(&lock, saved);
    return is_less;
}

void account_give(struct account *account)
{
    uint64_t saved = acquire(&lock);
    account->in_use--;
    account->holders--;
    release(&lock, saved);
}

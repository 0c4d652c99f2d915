// C++ exceptions, also out of a signal handler and in a thread.
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "check.h"

static int destroyed;

struct Counted {
    ~Counted() { destroyed++; }
};

static void raise_exception(int) { throw 42; }

__attribute__((noinline)) static int descend(int depth, volatile int *address) {
    Counted counted;
    if (depth == 0) {
        asm volatile("nop.m 0;;");
        *address = 1;
        throw std::runtime_error("deep");
    }
    return descend(depth - 1, address) + 1;
}

static int caught(int depth, volatile int *address) {
    try {
        descend(depth, address);
    } catch (const std::exception &error) {
        return std::string(error.what()) == "deep" ? 1 : 0;
    } catch (int number) {
        return number;
    }
    return 0;
}

int main() {
    int target;
    CHECK(caught(20, &target) == 1 && destroyed == 21);
    int in_thread = 0;
    std::thread thread([&] { in_thread = caught(5, &target); });
    thread.join();
    CHECK(in_thread == 1);
    struct sigaction action = {};
    action.sa_handler = raise_exception;
    action.sa_flags = SA_NODEFER;
    CHECK(!sigaction(SIGSEGV, &action, nullptr));
    auto *nowhere = reinterpret_cast<volatile int *>(0x12340);
    destroyed = 0;
    CHECK(caught(20, nowhere) == 42 && destroyed == 20);
    stack_t stack = {};
    stack.ss_sp = std::malloc(300000);
    stack.ss_size = 300000;
    CHECK(!sigaltstack(&stack, nullptr));
    action.sa_flags |= SA_ONSTACK;
    CHECK(!sigaction(SIGSEGV, &action, nullptr));
    CHECK(caught(40, nowhere) == 42);
    return report();
}

// A service with worker threads: server [REQUESTS [WORKERS [MICROSECONDS]]]. It leaks a table of
// sessions. It keeps a cache of strings between short-lived strings, which causes fragmentation. It
// allocates a burst of strings and frees all but every 25th string.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
struct Request {
    int id;
    std::string path, body;
};
struct Session {
    std::string user, token;
    std::vector<int> history;
};
class SessionTable
{ // This is the leak: sessions never expire.
    std::mutex m;
    std::unordered_map<int, std::unique_ptr<Session>> all;

  public:
    void touch(int id)
    {
        std::lock_guard l(m);
        auto &s = all[id];
        if (!s) {
            s = std::make_unique<Session>();
            s->user = "user-" + std::to_string(id) + std::string(40, 'u');
            s->token = std::string(64, 't');
        }
        s->history.push_back(id);
    }
};
class Cache
{ // The cache is bounded. Its long-lived entries are scattered among short-lived strings.
    std::mutex m;
    std::deque<std::string> order;
    std::unordered_map<std::string, std::string> map;
    size_t cap;

  public:
    explicit Cache(size_t c) : cap(c)
    {
    }
    std::string *find(const std::string &k)
    {
        std::lock_guard l(m);
        auto i = map.find(k);
        return i == map.end() ? nullptr : &i->second;
    }
    void put(std::string k, std::string v)
    {
        std::lock_guard l(m);
        if (map.emplace(k, std::move(v)).second) {
            order.push_back(std::move(k));
            if (order.size() > cap) {
                map.erase(order.front());
                order.pop_front();
            }
        }
    }
};
static SessionTable sessions;
static Cache cache(20000);
// Appends to a string; reserve() would avoid reallocations.
static std::string render(const Request &r, std::mt19937 &g)
{
    std::string out;
    int n = 20 + g() % 400;
    for (int i = 0; i < n; i++)
        out += "<li>item " + std::to_string(g() % 1000) + " of " + r.path + "</li>\n";
    return out;
}
static std::vector<std::string> tokenize(const std::string &s)
{
    std::vector<std::string> v;
    std::istringstream in(s);
    std::string w;
    while (in >> w)
        v.push_back(w);
    return v;
}
static size_t handle(const Request &r, std::mt19937 &g)
{
    auto words = tokenize(r.body);
    std::string page = render(r, g);
    // Keeps a small block between large blocks, which are freed.
    if (g() % 20 == 0)
        cache.put(r.path, page.substr(0, 200 + g() % 800));
    if (g() % 10 == 0)
        sessions.touch(r.id);
    return page.size() + words.size();
}
template <class T> class Queue
{
    std::mutex m;
    std::condition_variable cv;
    std::deque<T> q;
    bool done = false;

  public:
    void put(T t)
    {
        {
            std::lock_guard l(m);
            q.push_back(std::move(t));
        }
        cv.notify_one();
    }
    void close()
    {
        {
            std::lock_guard l(m);
            done = true;
        }
        cv.notify_all();
    }
    bool get(T &t)
    {
        std::unique_lock l(m);
        cv.wait(l, [&] { return done || !q.empty(); });
        if (q.empty())
            return false;
        t = std::move(q.front());
        q.pop_front();
        return true;
    }
};
// Allocates a burst of strings. Frees most of them afterwards, and keeps some.
static std::vector<std::string> batch_job(std::mt19937 &g)
{
    std::vector<std::string> v;
    for (int i = 0; i < 60000; i++)
        v.push_back(std::string(300 + g() % 900, 'b'));
    return v;
}
int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 20000, workers = argc > 2 ? atoi(argv[2]) : 4;
    int pace_us = argc > 3 ? atoi(argv[3]) : 0;
    Queue<Request> q;
    std::atomic<size_t> bytes{0};
    std::vector<std::thread> t;
    std::vector<std::string> kept;
    for (int i = 0; i < workers; i++)
        t.emplace_back([&, i] {
            std::mt19937 g(i);
            Request r;
            while (q.get(r))
                bytes += handle(r, g);
        });
    std::mt19937 g(42);
    for (int i = 0; i < n; i++) {
        Request r{(int)(g() % 1000000), "/catalog/" + std::to_string(g() % 50000) + "/page", ""};
        for (int k = 0; k < 30; k++)
            r.body += "token" + std::to_string(g() % 1000) + " ";
        q.put(std::move(r));
        if (i == n / 2) {
            auto v = batch_job(g);
            for (size_t k = 0; k < v.size(); k += 25)
                kept.push_back(std::move(v[k]));
        }
        if (pace_us)
            std::this_thread::sleep_for(std::chrono::microseconds(pace_us));
    }
    q.close();
    for (auto &x : t)
        x.join();
    printf("%zu bytes served\n", bytes.load());
    fflush(stdout);
    std::_Exit(0); // servers do not run destructors
}

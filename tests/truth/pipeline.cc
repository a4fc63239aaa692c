// pipeline THREADS ITEMS: stages in separate threads, connected by queues. Strings, maps and shared
// objects are allocated in one stage and freed in another by the last user.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct item {
    std::string name;
    std::vector<std::string> words;
    std::map<std::string, int> counts;
};
using item_ref = std::shared_ptr<item>;

class queue
{
  public:
    void put(item_ref i)
    {
        std::lock_guard<std::mutex> hold(lock);
        items.push_back(std::move(i));
        more.notify_one();
    }
    item_ref get()
    {
        std::unique_lock<std::mutex> hold(lock);
        more.wait(hold, [this] { return !items.empty(); });
        item_ref i = std::move(items.front());
        items.pop_front();
        return i;
    }

  private:
    std::mutex lock;
    std::condition_variable more;
    std::deque<item_ref> items;
};

static item_ref make_item(unsigned n)
{
    auto i = std::make_shared<item>();
    i->name = "item number " + std::to_string(n) + " of the pipeline";
    for (unsigned w = 0; w < 4 + n % 13; w++)
        i->words.push_back(std::string(10 + (n * 7 + w * 31) % 90, static_cast<char>('a' + w)));
    return i;
}

static void stage(queue &from, queue &to, std::vector<item_ref> &kept, std::mutex &lock)
{
    while (item_ref i = from.get()) {
        for (const auto &w : i->words)
            i->counts[w.substr(0, 12 + w.size() % 20)]++;
        i->words.erase(i->words.begin(), i->words.begin() + i->words.size() / 2);
        {
            std::lock_guard<std::mutex> hold(lock);
            kept[i->name.size() * 31 % kept.size()] = i;
        }
        to.put(std::move(i));
    }
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 4;
    unsigned items = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 10000;
    std::vector<queue> queues(threads + 1);
    std::vector<std::thread> all;
    std::vector<item_ref> kept(64);
    std::mutex lock;
    for (unsigned t = 0; t < threads; t++) {
        all.emplace_back([&, t] {
            stage(queues[t], queues[t + 1], kept, lock);
            queues[t + 1].put(nullptr);
        });
    }
    std::thread maker([&] {
        for (unsigned n = 0; n < items; n++)
            queues[0].put(make_item(n));
        queues[0].put(nullptr);
    });
    size_t sum = 0;
    while (item_ref i = queues[threads].get())
        sum += i->counts.size() + i->words.size();
    for (auto &t : all)
        t.join();
    maker.join();
    std::printf("%zu\n", sum);
    return 0;
}

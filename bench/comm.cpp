// All-reduce of float32, by every engine, in one run: `local` threads, ours over MPI, MPI_Allreduce
// itself, and MPI_Iallreduce, which is what Reduction::Library calls. Prints one line of JSON for each engine
// and size: the median of the slowest rank's times.
//   mpirun -np 4 build/bench/bench_comm           all engines, with 4 ranks
//   build/bench/bench_comm --ranks 4              local alone, where there is no MPI
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sched.h>
#if PLENUM_HAS_MPI
#include <mpi.h>
#endif

#include "plenum/comm/local/local_world.h"
#include "plenum/comm/mpi/mpi_world.h"

namespace plenum::comm {
namespace {

struct Options {
  std::size_t ranks = 2;
  std::vector<double> megabytes = {0.001, 0.064, 0.25, 1, 4, 16, 100, 400};
  double seconds = 1.0;  ///< for each engine and size
  std::vector<std::string> engines = {"local", "mpi", "MPI_Allreduce", "MPI_Iallreduce"};
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void print(const std::string& engine, std::size_t num_ranks, std::size_t num_bytes,
           const std::vector<double>& times) {
  const double seconds = median(times);
  const auto ranks = static_cast<double>(num_ranks);
  // What each rank must send and receive at least, as others count it ("bus bandwidth").
  const double moved = 2 * (ranks - 1) / ranks * static_cast<double>(num_bytes);
  fmt::print(
      R"({{"engine": "{}", "ranks": {}, "bytes": {}, "microseconds": {:.1f}, "best_microseconds": {:.1f}, )"
      R"("gigabytes_per_second": {:.3f}, "repetitions": {}}})"
      "\n",
      engine, num_ranks, num_bytes, seconds * 1e6, *std::min_element(times.begin(), times.end()) * 1e6,
      moved / seconds * 1e-9, times.size());
  std::fflush(stdout);
}

std::size_t repetitions(const Options& options, double estimate) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(options.seconds / std::max(estimate, 1e-7)), 5,
                                 2000);
}

/// One rank's times.
std::vector<double> time_local_rank(Communicator& all, std::span<float> values, const Options& options) {
  const Elements elements = elements_of(values);
  const auto reduce = [&] {
    all.start_barrier(0).wait();
    const Clock::time_point begin = Clock::now();
    all.start_all_reduce(elements, 0).wait();
    return seconds_since(begin);
  };
  reduce();
  double estimate = reduce();
  all.start_broadcast(elements_of(std::span(&estimate, 1)), 0, 0).wait();
  std::vector<double> times(repetitions(options, estimate));
  for (double& time : times) time = reduce();
  return times;
}

/// mpirun binds a process, and with it the threads that it starts.
void use_all_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof(cores), &cores);
}

void bench_local(const Options& options, std::size_t num_ranks, std::size_t count) {
  local::LocalWorld world(num_ranks);
  std::vector<std::vector<double>> times(num_ranks);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      use_all_cores();
      std::vector<float> values(count, 1e-20f);
      times[rank] = time_local_rank(*world.communicator(Rank::at(rank)), values, options);
    });
  }
  threads.clear();
  std::vector<double> slowest = times.front();
  for (const std::vector<double>& of : times) {
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], of[i]);
  }
  print("local", num_ranks, count * sizeof(float), slowest);
}

#if PLENUM_HAS_MPI

/// The engines over MPI, timed in turns, so that whatever disturbs one disturbs all.
class MpiBench {
 public:
  MpiBench(const Options& options, mpi::MpiWorld& world)
      : options_(options), world_(world), all_(world.communicator()) {}

  void run(std::size_t count) {
    std::vector<float> values(count, 1e-20f);
    std::vector<std::string> engines;
    for (const std::string& engine : options_.engines) {
      if (engine != "local") engines.push_back(engine);
    }
    double estimate = 0;
    for (const std::string& engine : engines) {
      time(engine, values);
      estimate = std::max(estimate, time(engine, values));
    }
    const std::size_t num_repetitions = repetitions(options_, estimate);
    std::vector<std::vector<double>> times(engines.size());
    for (std::size_t i = 0; i < num_repetitions; ++i) {
      for (std::size_t engine = 0; engine < engines.size(); ++engine) {
        times[engine].push_back(time(engines[engine], values));
      }
    }
    for (std::size_t engine = 0; world_.rank().value == 0 && engine < engines.size(); ++engine) {
      print(engines[engine], all_->size(), count * sizeof(float), times[engine]);
    }
  }

  Communicator& all() { return *all_; }

 private:
  /// Of the slowest rank.
  double time(const std::string& engine, std::span<float> values) {
    MPI_Barrier(MPI_COMM_WORLD);
    const Clock::time_point begin = Clock::now();
    if (engine == "mpi") {
      all_->start_all_reduce(elements_of(values), 0).wait();
    } else if (engine == "MPI_Iallreduce") {
      MPI_Request request;
      MPI_Iallreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                     MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    }
    const double own = seconds_since(begin);
    double slowest = own;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
  }

  const Options& options_;
  mpi::MpiWorld& world_;
  std::unique_ptr<Communicator> all_;
};

void bench(const Options& options) {
  mpi::MpiWorld world;
  MpiBench over_mpi(options, world);
  const bool has_local = std::count(options.engines.begin(), options.engines.end(), "local") > 0;
  for (const double megabytes : options.megabytes) {
    const auto count = static_cast<std::size_t>(megabytes * 1e6 / sizeof(float));
    if (world.size() > 1) over_mpi.run(count);
    const std::size_t num_ranks = world.size() > 1 ? world.size() : options.ranks;
    if (has_local && world.rank().value == 0) bench_local(options, num_ranks, count);
    over_mpi.all().start_barrier(0).wait();  // the others sleep meanwhile
  }
}

#else

void bench(const Options& options) {
  for (const double megabytes : options.megabytes) {
    bench_local(options, options.ranks, static_cast<std::size_t>(megabytes * 1e6 / sizeof(float)));
  }
}

#endif

}  // namespace
}  // namespace plenum::comm

int main(int num_arguments, char** arguments) {
  plenum::comm::Options options;
  CLI::App app("All-reduce by every engine");
  app.add_option("--ranks", options.ranks, "Of local, when not started by mpirun");
  app.add_option("--megabytes", options.megabytes, "Sizes");
  app.add_option("--seconds", options.seconds, "For each engine and size");
  app.add_option("--engines", options.engines, "local, mpi, MPI_Allreduce, MPI_Iallreduce");
  CLI11_PARSE(app, num_arguments, arguments);
  plenum::comm::bench(options);
}

#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include <cuda_runtime_api.h>

#include "plenum/tensor/cuda_check.h"

namespace plenum::bench {

struct Timing {
  int num_warm_up = 10;
  int num_samples = 21;
  int runs_of_sample = 8;  ///< back to back, so that starting one hides behind the one before
};

/// Milliseconds of one run of work on the GPU: the median of samples, each timed by events in the stream.
/// `run` gets the number of the run, to take another set of buffers each time: what lies in the second-level
/// cache from the run before would be read too fast.
inline double median_ms(cudaStream_t stream, const std::function<void(int)>& run, const Timing& timing = {}) {
  using tensor::check_cuda;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check_cuda(cudaEventCreate(&begin), "make an event");
  check_cuda(cudaEventCreate(&end), "make an event");
  int number = 0;
  for (int i = 0; i < timing.num_warm_up; ++i) run(number++);
  std::vector<float> samples(static_cast<std::size_t>(timing.num_samples));
  for (float& sample : samples) {
    check_cuda(cudaEventRecord(begin, stream), "record an event");
    for (int i = 0; i < timing.runs_of_sample; ++i) run(number++);
    check_cuda(cudaEventRecord(end, stream), "record an event");
    check_cuda(cudaEventSynchronize(end), "wait for an event");
    check_cuda(cudaEventElapsedTime(&sample, begin, end), "read a time");
  }
  check_cuda(cudaEventDestroy(begin), "free an event");
  check_cuda(cudaEventDestroy(end), "free an event");
  std::ranges::nth_element(samples, samples.begin() + timing.num_samples / 2);
  return static_cast<double>(samples[samples.size() / 2]) / timing.runs_of_sample;
}

}  // namespace plenum::bench

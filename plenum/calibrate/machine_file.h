#pragma once

#include <cstddef>
#include <string>

#include "plenum/calibrate/machine.h"
#include "plenum/plan/cluster.h"

namespace plenum::calibrate {

// Files of machines, as `plenum calibrate` writes them, and of clusters, as people do: TOML, see
// docs/formats.md. What is missing, misspelled or absurd is refused by UserError with file, line and key.

std::string print_machine(const Machine& machine);
void write_machine(const Machine& machine, const std::string& path);
Machine read_machine(const std::string& path);

/// How many ranks a node has and with how many threads; 0: as the file says, or its first setting.
struct ClusterRequest {
  std::size_t ranks = 0;
  std::size_t threads = 0;
};

/// One node of the machine, with a device for each rank: what was measured with as many ranks and threads, or
/// else with numbers nearest to them, in proportion. Collectives decide about its link, where messages have
/// another (comm/local copies a message twice).
plan::Cluster cluster_of(const Machine& machine, const ClusterRequest& request = {});

/// The cluster of a file, or of a machine's file one node. A machine's file that a cluster names lies beside
/// it, or has an absolute path.
plan::Cluster read_cluster(const std::string& path, const ClusterRequest& request = {});

}  // namespace plenum::calibrate

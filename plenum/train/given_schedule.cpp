#include "plenum/train/given_schedule.h"

#include <string>

#include <fmt/format.h>

#include "plenum/base/check.h"
#include "plenum/io/directory.h"
#include "plenum/io/file.h"
#include "plenum/pipeline/bert_schedule.h"
#include "plenum/schedule/check/check.h"
#include "plenum/schedule/core/dataflow.h"
#include "plenum/schedule/core/refreshes.h"
#include "plenum/schedule/text/parse_schedule.h"
#include "plenum/train/run_schedule.h"

namespace plenum::train {
namespace {

/// Ranks of a mesh's replica have its micro-batches.
void require_replicas(const schedule::Schedule& given, const std::string& file, const Mesh& mesh) {
  const schedule::Dataflow dataflow(given);
  const std::size_t per_replica = given.problem.num_micro_batches / mesh.num_replicas();
  for (std::uint32_t m = 0; m < given.problem.num_micro_batches; ++m) {
    for (std::size_t stage = 0; stage < given.num_stages(); ++stage) {
      const schedule::Rank rank = dataflow.runner(schedule::StageId::at(stage), {m});
      base::require(
          rank.index() / mesh.depth() == m / per_replica,
          "{} runs stage {} for micro-batch {} on rank {}; with --pp {} ranks {} to {} must do that", file,
          stage, m, rank.value, mesh.depth(), m / per_replica * mesh.depth(),
          (m / per_replica + 1) * mesh.depth() - 1);
    }
  }
}

void require_kfac(const schedule::Schedule& given, const std::string& file,
                  const optim::OptimizerOptions& optimizer) {
  const bool is_kfac = optimizer.kind == optim::OptimizerKind::Kfac;
  const bool has_kfac = given.problem.preconditioner == schedule::Preconditioner::Kfac;
  base::require(is_kfac || !has_kfac, "{} has K-FAC's work; add --optimizer kfac, or give one without it",
                file);
  base::require(!is_kfac || has_kfac,
                "{} has nothing of K-FAC; make it with plenum simulate --fill kfac --drains, or choose "
                "another --optimizer",
                file);
}

/// Without SOAP's work in the schedule, SOAP is part of the update.
void require_soap(const schedule::Schedule& given, const std::string& file,
                  const optim::OptimizerOptions& optimizer) {
  if (given.problem.preconditioner != schedule::Preconditioner::Shampoo) return;
  base::require(optimizer.kind == optim::OptimizerKind::Soap,
                "{} has SOAP's work; add --optimizer soap, or give one without it", file);
  base::require(!optimizer.soap.every, "{} says itself when SOAP refreshes; leave out --soap-every", file);
}

/// Work of K-FAC or SOAP in a schedule is that of the run.
void require_work_of_run(const schedule::Schedule& given, const std::string& file, const RunOptions& options,
                         const pipeline::BertProgramOptions& program) {
  require_kfac(given, file, options.optimizer.optimizer);
  require_soap(given, file, options.optimizer.optimizer);
  if (given.problem.preconditioner == schedule::Preconditioner::None) return;
  const bool is_kfac = given.problem.preconditioner == schedule::Preconditioner::Kfac;
  const std::size_t num_maps = num_kfac_maps(program.model);
  base::require(given.problem.num_factors == num_maps,
                "{} has {} linear maps with factors in a layer, the model {}", file,
                given.problem.num_factors, num_maps);
  base::require(schedule::Refreshes(given).is_ever_drained(),
                "in {} work of {} waits at the end of every step, so the run could not be resumed; make "
                "it with plenum simulate --fill {} --drains",
                file, is_kfac ? "K-FAC" : "SOAP", is_kfac ? "kfac" : "shampoo");
}

}  // namespace

std::optional<schedule::Schedule> read_given_schedule(const RunOptions& options, const Processes& processes,
                                                      const Note& note) {
  if (!options.has_schedule_file()) return std::nullopt;
  std::string path = options.run.schedule;
  std::string text;
  if (processes.is_first()) {
    const std::string kept = RunPaths(options.run.directory).schedule;
    if (!io::path_exists(path) && io::path_exists(kept)) {
      note(fmt::format("{} is gone; the run resumes with its copy, {}", path, kept));
      path = kept;
    }
    text = io::read_file(path);
  }
  return schedule::parse_schedule(processes.from_first(text), path);
}

void require_fitting(const schedule::Schedule& given, const RunOptions& options,
                     std::size_t micro_batches_per_replica, const pipeline::BertProgramOptions& program) {
  const std::string& file = options.run.schedule;
  const Mesh mesh = options.mesh();
  const schedule::Problem& problem = given.problem;
  base::require((given.num_stages() > 1) == (mesh.depth() > 1),
                "{} is of {}; give --pp as it needs, or another file: --pp {}", file,
                given.num_stages() == 1 ? "one stage" : fmt::format("{} stages", given.num_stages()),
                mesh.depth());
  base::require(given.ranks.size() == mesh.num_places(),
                "{} is of {} ranks, and the run has {}; give --ranks {}, or another file", file,
                given.ranks.size(), mesh.num_places(), given.ranks.size() * mesh.num_slices());
  const std::size_t num_layers = schedule::StageLayers(problem).total();
  base::require(num_layers == static_cast<std::size_t>(program.model.num_layers),
                "{} has stages of {} layers together, and the model has {}", file, num_layers,
                program.model.num_layers);
  const std::size_t num_micro_batches = micro_batches_per_replica * mesh.num_replicas();
  base::require(problem.num_micro_batches == num_micro_batches,
                "{} has {} micro-batches in a step, and the run {}; give --micro-batches {}, or another file",
                file, problem.num_micro_batches, num_micro_batches,
                problem.num_micro_batches / mesh.num_replicas());
  base::require(given.num_stages() == 1 || problem.has_tied_parameters || program.model.task,
                "{} does not say tied, and the first and the last stage share the word table; make it with "
                "plenum simulate --tied",
                file);
  base::require(problem.recomputation == options.run.recompute,
                "{} and --recompute do not say the same; give both the same", file);
  base::require(problem.sharding == options.run.shard,
                "{} and --shard do not say the same; give both the same", file);
  const bool is_divided = mesh.num_slices() > 1 || schedule::is_sharded(problem);
  const bool needs_norms =
      is_divided && options.optimizer.optimizer.update_kind() == optim::OptimizerKind::Lamb;
  base::require(!needs_norms || problem.has_tensor_norms,
                "{} does not say tensor-norms, which LAMB needs with --tp or --shard", file);
  base::require(needs_norms || !problem.has_tensor_norms,
                "{} says tensor-norms, which only LAMB with --tp or --shard needs", file);
  require_work_of_run(given, file, options, program);
  schedule::require_checked(given);
  pipeline::require_bert_schedule(given, program);
  require_replicas(given, file, mesh);
}

}  // namespace plenum::train

#ifndef KEVIN_KEVIN_HPP
#define KEVIN_KEVIN_HPP

/// Floors 0 to 2: everything that needs the standard library alone.

#include "kevin/config.hpp"
#include "kevin/core/check.hpp"
#include "kevin/core/env.hpp"
#include "kevin/core/error.hpp"
#include "kevin/core/policy.hpp"
#include "kevin/core/random.hpp"
#include "kevin/core/reward.hpp"
#include "kevin/core/rollout.hpp"
#include "kevin/core/rollout_group.hpp"
#include "kevin/core/step.hpp"
#include "kevin/core/trajectory.hpp"
#include "kevin/core/turn.hpp"
#include "kevin/core/vector_env.hpp"
#include "kevin/core/wrappers/order_enforcing.hpp"
#include "kevin/core/wrappers/record_episode_statistics.hpp"
#include "kevin/core/wrappers/time_limit.hpp"
#include "kevin/rl/advantages.hpp"
#include "kevin/rl/metrics.hpp"
#include "kevin/rl/objective.hpp"
#include "kevin/rl/returns.hpp"

#endif  // KEVIN_KEVIN_HPP

package plan

// What the tests with fixtures use: those import this package.
var (
	DesiredShards    = desiredShards
	HitRatioRecovery = hitRatioRecovery
	PlanRepeats      = planRepeats
	PlanResources    = planResources
	PlanStep         = planStep
)

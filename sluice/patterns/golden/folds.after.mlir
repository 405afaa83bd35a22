module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
    %0 = "stablehlo.exponential"(%arg0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %1 = "stablehlo.exponential"(%arg1) : (tensor<3xf32>) -> tensor<3xf32>
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<3x4xf32>
    %10 = "stablehlo.optimization_barrier"(%2) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %11 = "stablehlo.log"(%10) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %12 = "stablehlo.optimization_barrier"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %13 = "stablehlo.power"(%12, %arg0) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %14 = "stablehlo.optimization_barrier"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %15 = "stablehlo.multiply"(%14, %14) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %16 = "stablehlo.optimization_barrier"(%15) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %17 = "stablehlo.sqrt"(%16) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %18 = "stablehlo.optimization_barrier"(%0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %19 = "stablehlo.multiply"(%18, %2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %8 = "stablehlo.divide"(%0, %arg0) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %9 = "stablehlo.log"(%arg0) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%11, %13, %17, %19, %8, %9) : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> ()
  }
}

module @collectives attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x2xf32>) -> (tensor<ui32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>, tensor<1x4xf32>, tensor<2x2xf32>) {
    %0 = "stablehlo.replica_id"() : () -> tensor<ui32>
    %1 = "stablehlo.convert"(%0) : (tensor<ui32>) -> tensor<f32>
    %2 = "stablehlo.constant"() {value = dense<10.0> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.multiply"(%1, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x2xf32>
    %5 = "stablehlo.add"(%arg0, %4) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %6 = "stablehlo.replica_id"() : () -> tensor<ui32>
    %8 = "stablehlo.all_reduce"(%5) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %7 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %10 = "stablehlo.all_reduce"(%5) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %9 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%9) : (tensor<f32>) -> ()
    }) {replica_groups = dense<> : tensor<0x0xi64>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %12 = "stablehlo.all_reduce"(%5) ({
    ^bb0(%b4: tensor<f32>, %b5: tensor<f32>):
      %11 = "stablehlo.maximum"(%b4, %b5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) {replica_groups = dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %13 = "stablehlo.slice"(%5) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 2>, strides = array<i64: 1, 1>} : (tensor<2x2xf32>) -> tensor<1x2xf32>
    %14 = "stablehlo.all_gather"(%13) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, all_gather_dim = 0 : i64} : (tensor<1x2xf32>) -> tensor<4x2xf32>
    %15 = "stablehlo.slice"(%5) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 2>, strides = array<i64: 1, 1>} : (tensor<2x2xf32>) -> tensor<2x1xf32>
    %16 = "stablehlo.all_gather"(%15) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, all_gather_dim = 1 : i64} : (tensor<2x1xf32>) -> tensor<2x2xf32>
    %18 = "stablehlo.reduce_scatter"(%5) ({
    ^bb0(%b6: tensor<f32>, %b7: tensor<f32>):
      %17 = "stablehlo.add"(%b6, %b7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%17) : (tensor<f32>) -> ()
    }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 0 : i64} : (tensor<2x2xf32>) -> tensor<1x2xf32>
    %19 = "stablehlo.all_to_all"(%5) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64} : (tensor<2x2xf32>) -> tensor<1x4xf32>
    %20 = "stablehlo.collective_permute"(%5) {source_target_pairs = dense<[[0, 1], [1, 2], [2, 0]]> : tensor<3x2xi64>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    "func.return"(%6, %8, %10, %12, %14, %16, %18, %19, %20) : (tensor<ui32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>, tensor<1x4xf32>, tensor<2x2xf32>) -> ()
  }
}

module @dynamic_slices attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<3x4xf32>) {
    %0 = "stablehlo.dynamic_slice"(%arg0, %arg1, %arg2) {slice_sizes = array<i64: 2, 2>} : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %1 = "stablehlo.dynamic_update_slice"(%arg0, %arg3, %arg1, %arg2) : (tensor<3x4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    "func.return"(%0, %1) : (tensor<2x2xf32>, tensor<3x4xf32>) -> ()
  }
}

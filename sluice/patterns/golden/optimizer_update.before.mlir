module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<256x256xf32>, %arg1: tensor<1xf32>, %arg2: tensor<256x256xf32>) -> (tensor<256x256xf32>) {
    %0 = "stablehlo.reshape"(%arg1) : (tensor<1xf32>) -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<256x256xf32>
    %2 = "stablehlo.multiply"(%arg2, %1) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %3 = "stablehlo.subtract"(%arg0, %2) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    "func.return"(%3) : (tensor<256x256xf32>) -> ()
  }
}

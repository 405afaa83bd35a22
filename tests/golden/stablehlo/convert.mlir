module @convert attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<5xf32>, %arg1: tensor<3xi32>, %arg2: tensor<2xf64>) -> (tensor<5xi32>, tensor<5xi1>, tensor<5xbf16>, tensor<5xf16>, tensor<3xui8>, tensor<3xf32>, tensor<3xi64>, tensor<2xf32>, tensor<3xui32>, tensor<5xui32>, tensor<3xi8>) {
    %0 = "stablehlo.convert"(%arg0) : (tensor<5xf32>) -> tensor<5xi32>
    %1 = "stablehlo.convert"(%arg0) : (tensor<5xf32>) -> tensor<5xi1>
    %2 = "stablehlo.convert"(%arg0) : (tensor<5xf32>) -> tensor<5xbf16>
    %3 = "stablehlo.convert"(%arg0) : (tensor<5xf32>) -> tensor<5xf16>
    %4 = "stablehlo.convert"(%arg1) : (tensor<3xi32>) -> tensor<3xui8>
    %5 = "stablehlo.convert"(%arg1) : (tensor<3xi32>) -> tensor<3xf32>
    %6 = "stablehlo.convert"(%arg1) : (tensor<3xi32>) -> tensor<3xi64>
    %7 = "stablehlo.convert"(%arg2) : (tensor<2xf64>) -> tensor<2xf32>
    %8 = "stablehlo.bitcast_convert"(%arg1) : (tensor<3xi32>) -> tensor<3xui32>
    %9 = "stablehlo.bitcast_convert"(%arg0) : (tensor<5xf32>) -> tensor<5xui32>
    %10 = "stablehlo.convert"(%arg1) : (tensor<3xi32>) -> tensor<3xi1>
    %11 = "stablehlo.convert"(%10) : (tensor<3xi1>) -> tensor<3xi8>
    "func.return"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %11) : (tensor<5xi32>, tensor<5xi1>, tensor<5xbf16>, tensor<5xf16>, tensor<3xui8>, tensor<3xf32>, tensor<3xi64>, tensor<2xf32>, tensor<3xui32>, tensor<5xui32>, tensor<3xi8>) -> ()
  }
}
